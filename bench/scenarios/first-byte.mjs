import { chatStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { chatRequest } from '../requests.mjs'
import { scenario as chatBurst } from './chat-burst.mjs'

const MODEL = 'bench-chat-brief'

export const scenario = {
  name: 'first-byte',
  title: 'time to first byte, 8 streams, an event every 10 ms',
  unit: 'ms, p50',
  measurement: load,
  warmUp: chatBurst,
  load: { connections: 8 },
  unitsPerAnswer: 14,
  costNanoDollars: CHAT_COST,
  headline: 'firstByteMs',
  comparison: 'difference',
  target: 0.2,
  request: () => chatRequest(MODEL, { stream: true }),
  faultsOf: (answer, proxy) => chatStreamFaults(answer, { proxy, model: MODEL, contentEvents: 10 }),
}
