package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

// A manifest is an object that a file of packaging/kubernetes describes.
type manifest struct {
	configs  []*corev1.ConfigMap
	workload map[string]*appsv1.Deployment
	services []*corev1.Service
}

// manifestOf decodes a file as the Kubernetes API does. Unknown fields fail the test.
func manifestOf(t *testing.T, name string) manifest {
	t.Helper()
	m := manifest{workload: map[string]*appsv1.Deployment{}}
	text, err := os.ReadFile(filepath.Join("..", "packaging", "kubernetes", name))
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var of metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(document), &of))
		decode := func(into any) { require.NoError(t, yaml.UnmarshalStrict([]byte(document), into), "%s", document) }
		switch of.APIVersion + " " + of.Kind {
		case "v1 ConfigMap":
			c := new(corev1.ConfigMap)
			decode(c)
			m.configs = append(m.configs, c)
		case "apps/v1 Deployment":
			d := new(appsv1.Deployment)
			decode(d)
			m.workload[d.Name] = d
		case "v1 Service":
			s := new(corev1.Service)
			decode(s)
			m.services = append(m.services, s)
		case "policy/v1 PodDisruptionBudget":
			decode(new(policyv1.PodDisruptionBudget))
		case "networking.k8s.io/v1 NetworkPolicy":
			decode(new(networkingv1.NetworkPolicy))
		default:
			t.Errorf("%s: an unknown kind %+v", name, of)
		}
	}
	return m
}

// TestKubernetesManifests: Kubernetes knows every field, references are right, and weir accepts the rules without a
// warning.
func TestKubernetesManifests(t *testing.T) {
	weir := exampletest.Weir(t, ".")
	for _, name := range []string{"sidecar.yaml", "store.yaml"} {
		m := manifestOf(t, name)
		require.Len(t, m.configs, 1)
		folder := t.TempDir()
		rules := filepath.Join(folder, "weir.yaml")
		require.NoError(t, os.WriteFile(filepath.Join(folder, "password"), []byte("secret"), 0o600))
		text := strings.ReplaceAll(m.configs[0].Data["weir.yaml"], "/etc/weir-store/", folder+"/")
		require.NoError(t, os.WriteFile(rules, []byte(text), 0o600))
		out, err := exec.Command(weir, "check", "--quiet", rules).CombinedOutput()
		assert.NoError(t, err, "%s", out)
		assert.Empty(t, out, "no warning")

		mounted := 0
		for _, d := range m.workload {
			pod := d.Spec.Template
			assert.Equal(t, d.Spec.Selector.MatchLabels, pod.Labels)
			volumes := map[string]string{}
			for _, v := range pod.Spec.Volumes {
				volumes[v.Name] = v.Name
				if v.ConfigMap != nil {
					assert.Equal(t, m.configs[0].Name, v.ConfigMap.Name)
				}
			}
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				for _, v := range c.VolumeMounts {
					assert.Equal(t, v.Name, volumes[v.Name])
					assert.Empty(t, v.SubPath, "changes of the ConfigMap would not be seen")
					mounted++
				}
				if c.Name != "app" {
					assert.NotNil(t, c.ReadinessProbe)
					assert.True(t, *c.SecurityContext.RunAsNonRoot)
				}
			}
		}
		assert.Positive(t, mounted)
		for _, s := range m.services {
			pod := m.workload[s.Name].Spec.Template
			assert.Equal(t, pod.Labels, s.Spec.Selector)
			var ports []string
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				for _, p := range c.Ports {
					ports = append(ports, p.Name)
				}
			}
			assert.Contains(t, ports, s.Spec.Ports[0].TargetPort.StrVal)
		}
	}
}

// TestKubernetesNodes: the number of nodes in the store's settings equals the number of replicas. With fewer nodes,
// each replica would admit too much while the store is lost.
func TestKubernetesNodes(t *testing.T) {
	m := manifestOf(t, "store.yaml")
	var rules struct{ Store struct{ Nodes int32 } }
	require.NoError(t, yaml.Unmarshal([]byte(m.configs[0].Data["weir.yaml"]), &rules))
	assert.Equal(t, *m.workload["weir"].Spec.Replicas, rules.Store.Nodes)
}

// TestEnvoyGatewayValues: packaging/kubernetes/envoy-gateway.yaml sets the image where Envoy Gateway reads it.
func TestEnvoyGatewayValues(t *testing.T) {
	var values struct {
		Config struct {
			EnvoyGateway struct {
				Provider struct {
					Kubernetes struct {
						RateLimitDeployment struct {
							Container struct{ Image string }
						}
					}
				}
			}
		}
	}
	text, err := os.ReadFile("../packaging/kubernetes/envoy-gateway.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &values))
	assert.Contains(t, values.Config.EnvoyGateway.Provider.Kubernetes.RateLimitDeployment.Container.Image, "/weir-envoy:")
}
