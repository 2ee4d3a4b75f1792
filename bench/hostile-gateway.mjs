import { createServer } from 'node:http'
import { blockedTimes } from './blocked-times.mjs'
import { importBuilt } from './built.mjs'
import { answerQuestions } from './child-process.mjs'
import { slowness } from './machine-slowness.mjs'

/**
 * A gateway whose callers and vendors are hostile, in a separate process, so that its small heap affects no other process. Its vendors
 * answer at the address in the first argument. With a second argument, hooks of every kind read and
 * redact all texts, and batches are made of ordinary calls.
 */

const [origin, hasHooks] = process.argv.slice(2)
const signalbox = await importBuilt('index')
const { nodeHandler } = await importBuilt('node')
const { CALLER_KEY, MODELS } = await import('./hostile-models.mjs')

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

/** Two hooks that read all texts, and the redaction of values in the hostile texts. */
const hooks = [
  signalbox.redact([signalbox.pii.email, signalbox.pii.card, { name: 'own', pattern: /hit/, maxLength: 3 }]),
  { name: 'whole', request: (request) => void request.texts().length, answer: (answer) => void answer.texts().length },
  { name: 'windows', text: { holdBack: { chars: 64 }, check: () => undefined } },
]

/** Serves a gateway on a free port. */
async function serve() {
  const gateway = signalbox.createGateway({
    vendors,
    models: MODELS,
    billing: 'off',
    keys: [{ key: CALLER_KEY, account: 'acct_hostile' }],
    allowPrivateUrls: true,
    batches: { native: hasHooks === undefined },
    ...(hasHooks === undefined ? {} : { hooks }),
  })
  await gateway.start()
  return listen(nodeHandler(gateway))
}

async function listen(handler) {
  const server = createServer(handler)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${server.address().port}`
}

/** Measures the time that the engine alone needs for a JSON text, which cannot be interrupted. */
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
  { gateway: await serve(), baseline: await listen(measureJson) },
  { begin: () => probe.begin(), end: () => probe.end(), slowness, memory: () => process.memoryUsage().rss },
)
