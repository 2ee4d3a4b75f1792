import { chatStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { chatRequest } from '../requests.mjs'
import { STREAM_EVENTS } from '../vendor-answers.mjs'
import { scenario as chatBurst } from './chat-burst.mjs'

const MODEL = 'bench-chat-paced'

export const scenario = {
  name: 'chat-paced',
  title: 'chat, 200 streams, an event every 20 ms',
  unit: 'CPU µs/event',
  measurement: load,
  warmUp: chatBurst,
  load: { connections: 200, answersPerConnection: 1, spreadMs: 20 },
  unitsPerAnswer: STREAM_EVENTS,
  costNanoDollars: CHAT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.2,
  goal: 1.15,
  request: () => chatRequest(MODEL, { stream: true }),
  faultsOf: (answer, proxy) => chatStreamFaults(answer, { proxy, model: MODEL }),
}
