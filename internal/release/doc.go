// Command release publishes the modules of the repository, and checks in every CI run that it could.
//
//	release check                          what make release-check does
//	release release -version v1.2.3        what make release does
//
// docs/decisions/0001-modules.md says why the modules are as they are, docs/releasing.md how to release.
package main
