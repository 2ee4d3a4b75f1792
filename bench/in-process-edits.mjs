// Measures the gateway's own cost of one image edit, with a 2 MB form in and 2 MB of JSON out, without sockets; see in-process.mjs.
//
//   node --expose-gc bench/in-process-edits.mjs [requests per round]
//   node --cpu-prof --cpu-prof-interval 100 bench/in-process-edits.mjs
import { createGateway, openai } from '../dist/index.js'
import { answeringTransport, CALLER_KEY, measureRounds, sendOnce } from './in-process-rounds.mjs'
import { imageEditRequest } from './requests.mjs'
import { imageEditAnswer } from './vendor-answers.mjs'

/** Bytes of one read from a socket. */
const READ_BYTES = 65_536

const perRound = Number(process.argv[2] ?? 1_000)

const answer = withoutHead(imageEditAnswer())
const edit = imageEditRequest('bench-edit')
const contentType = /\r\ncontent-type: (multipart[^\r]*)/.exec(edit.latin1Slice(0, READ_BYTES))[1]

const gateway = createGateway({
  vendors: [openai({ apiKey: 'vendor-key' })],
  models: [
    { id: 'bench-edit', kind: 'image_edit', vendor: 'openai', upstream: 'image-bench', protocol: 'generations' },
  ],
  prices: {
    currency: 'USD',
    prices: [
      { model: 'bench-edit', meter: 'input_token', amount: '1.00', per: 1_000_000 },
      { model: 'bench-edit', meter: 'input_image_token', amount: '2.00', per: 1_000_000 },
      { model: 'bench-edit', meter: 'output_image_token', amount: '4.00', per: 1_000_000 },
    ],
  },
  keys: [{ key: CALLER_KEY, account: 'bench' }],
  limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
  transport: answeringTransport(reads(answer)),
})
await gateway.start()
await gateway.accounts.credit('bench', '1000000')

const request = { path: '/v1/images/edits', contentType, chunks: reads(withoutHead(edit)) }
await measureRounds(() => sendOnce(gateway, request), { perRound, rounds: 15, parallel: 8 })
await gateway.close({ drainMs: 0 })

/** A body in chunks, as from a socket. */
function reads(bytes) {
  const count = Math.ceil(bytes.byteLength / READ_BYTES)
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * READ_BYTES, (index + 1) * READ_BYTES))
}

function withoutHead(message) {
  return message.subarray(message.indexOf('\r\n\r\n') + 4)
}
