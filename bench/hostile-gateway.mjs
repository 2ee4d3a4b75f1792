import { createServer } from 'node:http'
import { blockedTimes } from './blocked-times.mjs'
import { importBuilt } from './built.mjs'
import { answerQuestions } from './child-process.mjs'

/**
 * A gateway whose callers and vendors are hostile, in a process of its own, so that a small heap ends nobody else. Its vendors answer at
 * the address in the first argument. A second gateway has hooks that read and change all texts.
 */

const [origin] = process.argv.slice(2)
const signalbox = await importBuilt('index')
const { nodeHandler } = await importBuilt('node')
const { CALLER_KEY, MODELS } = await import('./hostile-bodies.mjs')

const key = { apiKey: 'sk-hostile-0123456789abcdef', baseURL: origin }
const vendors = [
  signalbox.openai(key),
  signalbox.anthropic(key),
  signalbox.gemini(key),
  signalbox.dashscope(key),
  signalbox.voyage(key),
  signalbox.cohere(key),
  signalbox.amazonBedrock({ apiKey: key.apiKey, endpoint: origin }),
]
const readTexts = { name: 'read-texts', request: (call) => void call.texts(), answer: (answer) => void answer.texts() }
const hooks = [
  readTexts,
  signalbox.redact([{ name: 'hit', pattern: /hit/, maxLength: 3 }], { name: 'redact-hits' }),
  signalbox.redact([signalbox.pii.email, signalbox.pii.phone]),
]

/** Serves a gateway on a free port. */
async function serve(options) {
  const gateway = signalbox.createGateway({
    vendors,
    models: MODELS,
    billing: 'off',
    keys: [{ key: CALLER_KEY, account: 'acct_hostile' }],
    allowPrivateUrls: true,
    ...options,
  })
  await gateway.start()
  return listen(nodeHandler(gateway))
}

async function listen(handler) {
  const server = createServer(handler)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${server.address().port}`
}

/** Times what the engine alone takes for a JSON text: it cannot be interrupted. */
async function measureJson(request, response) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const began = performance.now()
  try {
    JSON.stringify(JSON.parse(new TextDecoder().decode(Buffer.concat(chunks))))
  } catch {
    // Not every body is JSON.
  }
  response.end(String(performance.now() - began))
}

const probe = blockedTimes()
answerQuestions(
  { plain: await serve({}), hooked: await serve({ hooks }), baseline: await listen(measureJson) },
  { begin: () => probe.begin(), end: () => probe.end(), memory: () => process.memoryUsage().rss },
)
