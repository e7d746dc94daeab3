// Answers what Express with cookie-parser and qs, or Fastify with its cookie plugin, reads: node.js FRAMEWORK PORT.
const [framework, port] = process.argv.slice(2)
const text = (value) => (value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value))
const read = (req) => ({ cookie: text(req.cookies.sid), query: text(req.query.k), header: text((req.headers['x-api-key'] || '').trim()) })
if (framework === 'express') {
  const app = require('express')()
  app.set('query parser', 'extended')
  app.use(require('cookie-parser')())
  app.use((req, res) => res.json(read(req)))
  app.listen(+port, '127.0.0.1')
} else {
  const app = require('fastify')()
  app.register(require('@fastify/cookie'))
  app.get('/', async (req) => read(req))
  app.listen({ port: +port, host: '127.0.0.1' })
}
