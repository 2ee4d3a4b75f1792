import { createGateway, openai } from '../dist/index.js'
import { CHAT_ANSWER, CHAT_REQUEST } from './in-process-messages.mjs'
import { answeringTransport, CALLER_KEY } from './in-process-rounds.mjs'

const PRICES = {
  currency: 'USD',
  prices: [
    { model: 'bench-chat', meter: 'input_token', amount: '1.00', per: 1_000_000 },
    { model: 'bench-chat', meter: 'output_token', amount: '4.00', per: 1_000_000 },
  ],
}

/** The request of one small chat, for `sendOnce`. */
export const CHAT = { path: '/v1/chat/completions', contentType: 'application/json', chunks: [CHAT_REQUEST] }

/** A gateway with everything on whose vendor answers a small chat in the same process; `options` add to it. */
export async function openChatGateway(options = {}) {
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'vendor-key' })],
    models: [
      { id: 'bench-chat', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini', limits: { maxOutputTokens: 1000 } },
    ],
    ...(options.billing === 'off' ? {} : { prices: PRICES }),
    keys: [{ key: CALLER_KEY, account: 'bench' }],
    limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
    transport: answeringTransport([CHAT_ANSWER]),
    ...options,
  })
  await gateway.start()
  if (options.billing !== 'off') await gateway.accounts.credit('bench', '1000000')
  return gateway
}
