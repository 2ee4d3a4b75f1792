import { chatStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { chatRequest } from '../requests.mjs'
import { STREAM_EVENTS } from '../vendor-answers.mjs'

const MODEL = 'bench-chat-burst'

export const scenario = {
  name: 'chat-burst',
  title: 'chat, 204 events at once, 16 connections',
  unit: 'CPU µs/event',
  measurement: load,
  load: { connections: 16 },
  unitsPerAnswer: STREAM_EVENTS,
  costNanoDollars: CHAT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.2,
  goal: 1,
  request: () => chatRequest(MODEL, { stream: true }),
  faultsOf: (answer, proxy) => chatStreamFaults(answer, { proxy, model: MODEL }),
}
