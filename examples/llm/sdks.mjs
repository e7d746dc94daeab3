// The official SDKs through weir: node sdks.mjs URL. They are found beside NODE_MODULES, a folder of npm.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(process.env.NODE_MODULES + '/')
const base = process.argv[2]
const load = async (name) => import(require.resolve(name))
const { default: OpenAI } = await load('openai')
const { default: Anthropic } = await load('@anthropic-ai/sdk')
const { Ollama } = await load('ollama')

const messages = [{ role: 'user', content: 'Count.' }]
const headers = (team) => ({ 'X-Team': team })

async function collect(stream, text) {
  let all = ''
  for await (const part of stream) all += text(part) ?? ''
  return all
}
const words = (n) => Array.from({ length: n }, (_, i) => `word${i} `).join('')

const openai = new OpenAI({ baseURL: base + '/v1', apiKey: 'none', defaultHeaders: headers('openai'), maxRetries: 0 })
let answer = await openai.chat.completions.create({ model: 'tiny', messages, max_tokens: 5 })
assert.equal(answer.choices[0].message.content, words(5))
assert.equal(answer.usage.completion_tokens, 5)
let stream = await openai.chat.completions.create({ model: 'tiny', messages, max_tokens: 5, stream: true })
const chunks = []
assert.equal(await collect(stream, (c) => (chunks.push(c), c.choices[0].delta.content)), words(5))
assert.ok(chunks.every((c) => c.choices.length === 1 && !c.usage), 'the usage that weir asked for is hidden')
stream = await openai.chat.completions.create({
  model: 'tiny', messages, max_tokens: 5, stream: true, stream_options: { include_usage: true },
})
let usage
for await (const c of stream) usage = c.usage ?? usage
assert.equal(usage.completion_tokens, 5)
answer = await openai.responses.create({ model: 'tiny', input: 'Count.', max_output_tokens: 5 })
assert.equal(answer.output_text, words(5))
stream = await openai.responses.create({ model: 'tiny', input: 'Count.', max_output_tokens: 5, stream: true })
assert.equal(await collect(stream, (e) => e.type === 'response.output_text.delta' ? e.delta : ''), words(5))
assert.equal((await openai.embeddings.create({ model: 'tiny', input: 'a', encoding_format: 'float' })).usage.total_tokens > 0, true)
await assert.rejects(openai.chat.completions.create({ model: 'none', messages }), OpenAI.NotFoundError)

const anthropic = new Anthropic({ baseURL: base, apiKey: 'none', defaultHeaders: headers('anthropic'), maxRetries: 0 })
answer = await anthropic.messages.create({ model: 'tiny', max_tokens: 5, messages })
assert.equal(answer.content[0].text, words(5))
const final = await anthropic.messages.stream({ model: 'tiny', max_tokens: 5, messages }).finalMessage()
assert.equal(final.content[0].text, words(5))
assert.equal(final.usage.output_tokens, 5)

const ollama = new Ollama({ host: base, headers: headers('ollama') })
answer = await ollama.chat({ model: 'tiny', messages, options: { num_predict: 5 } })
assert.equal(answer.message.content, words(5))
assert.equal(await collect(await ollama.chat({ model: 'tiny', messages, stream: true, options: { num_predict: 5 } }),
  (p) => p.message.content), words(5))

// A budget that is used up is an error that each SDK knows, and a retry waits for as long as weir says.
const poor = async (ask) => {
  for (let i = 0; i < 20; i++) await ask()
}
const big = { model: 'tiny', messages, max_tokens: 1000 }
await assert.rejects(poor(() => openai.chat.completions.create(big, { headers: headers('poor 1') })), (e) => {
  assert.ok(e instanceof OpenAI.RateLimitError, String(e))
  assert.equal(e.code, 'rate_limit_exceeded')
  assert.equal(e.headers.get('x-ratelimit-limit-tokens'), '6000')
  return true
})
await assert.rejects(poor(() => anthropic.messages.create(big, { headers: headers('poor 2') })), (e) => {
  assert.ok(e instanceof Anthropic.RateLimitError, String(e))
  assert.equal(e.error.error.type, 'rate_limit_error')
  return true
})
const poorOllama = new Ollama({ host: base, headers: headers('poor 3') })
await assert.rejects(poor(() => poorOllama.chat({ model: 'tiny', messages, options: { num_predict: 1000 } })), (e) => {
  assert.equal(e.status_code, 429)
  return true
})
console.log('the SDKs work')
