import { messagesStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { messagesRequest } from '../requests.mjs'
import { MESSAGES_EVENTS } from '../vendor-answers.mjs'
import { scenario as messagesBurst } from './messages-burst.mjs'

const MODEL = 'bench-claude-paced'

export const scenario = {
  name: 'messages-paced',
  title: 'Messages, 200 streams, an event every 20 ms',
  unit: 'CPU µs/event',
  measurement: load,
  warmUp: messagesBurst,
  load: { connections: 200, answersPerConnection: 1, spreadMs: 20 },
  unitsPerAnswer: MESSAGES_EVENTS,
  costNanoDollars: CHAT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.5,
  goal: 1.2,
  request: () => messagesRequest(MODEL),
  faultsOf: (answer, proxy) => messagesStreamFaults(answer, { proxy, model: MODEL }),
}
