// Measures the CPU time that hooks and the response cache add to one small chat, and to a stream of 200 chunks, without sockets, compared
// with a gateway without them. The gateways take turns, round by round, in one process.
//
//   node --expose-gc bench/hooks.mjs [requests per round] [rounds]
import { pii, redact } from '../dist/index.js'
import { openChatGateway } from './in-process-chat.mjs'
import { compareLanes } from './in-process-lanes.mjs'
import { CHAT_REQUEST } from './in-process-messages.mjs'
import { answeringTransport, sendOnce } from './in-process-rounds.mjs'

const perRound = Number(process.argv[2] ?? 320)
const rounds = Number(process.argv[3] ?? 100)

const PATH = '/v1/chat/completions'
const CHUNKS = 200
const RULES = [pii.email, pii.card, pii.iban, pii.ssn, pii.ip]
const CACHED = { cache: { rules: [{ sampling: 'any' }] } }

/** Requests that differ in a number of their prompt, so that none is answered by the cache. */
function differing(text) {
  const body = Buffer.from(text.replace('Why is', '00000000'))
  const place = body.indexOf('00000000')
  let count = 0
  return () => {
    count += 1
    const chunk = Buffer.from(body)
    chunk.write(String(count).padStart(8, '0'), place)
    return chunk
  }
}

function streamTransport() {
  const frame = (delta, rest = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4.1-mini', choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`
  const usage = { prompt_tokens: 160, completion_tokens: CHUNKS, total_tokens: 160 + CHUNKS }
  const frames = [
    ...Array.from({ length: CHUNKS }, () => frame({ content: ' light air sky' })),
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4.1-mini', choices: [], usage })}\n\n`,
    'data: [DONE]\n\n',
  ].map((text) => Buffer.from(text))
  const inner = answeringTransport(frames)
  return {
    close: inner.close,
    send: (request, handler) =>
      inner.send(request, {
        onHead: (status) => handler.onHead(status, { 'content-type': 'text/event-stream' }),
        onData: (chunk) => handler.onData(chunk),
        onEnd: () => handler.onEnd(),
      }),
  }
}

async function lane(name, { text, isSame = false, ...options }) {
  const gateway = await openChatGateway(options)
  const next = isSame ? () => Buffer.from(text) : differing(text)
  const once = () => sendOnce(gateway, { path: PATH, contentType: 'application/json', chunks: [next()] })
  await once()
  return { name, gateway, once }
}

const whole = CHAT_REQUEST.toString()
const stream = JSON.stringify({ ...JSON.parse(whole), stream: true })
const suites = [
  [
    ['chat', { text: whole }],
    ['chat again', { text: whole }],
    ['a synchronous request hook', { text: whole, hooks: [{ name: 'own', request: () => undefined }] }],
    ['redaction of request and answer', { text: whole, hooks: [redact(RULES)] }],
    ['cache, miss', { text: whole, ...CACHED }],
    ['cache, hit', { text: whole, isSame: true, ...CACHED }],
  ],
  [
    ['stream', { text: stream, transport: streamTransport() }],
    ['stream again', { text: stream, transport: streamTransport() }],
    ['redaction of a stream', { text: stream, transport: streamTransport(), hooks: [redact(RULES)] }],
    ['cache, miss of a stream', { text: stream, transport: streamTransport(), ...CACHED }],
    ['cache, hit of a stream', { text: stream, isSame: true, transport: streamTransport(), ...CACHED }],
  ],
]

for (const suite of suites) {
  const lanes = []
  for (const [name, options] of suite) lanes.push(await lane(name, options))
  await compareLanes(lanes, { perRound, rounds })
  for (const { gateway } of lanes) await gateway.close({ drainMs: 0 })
}
