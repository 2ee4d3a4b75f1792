import { jsonFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { chatRequest } from '../requests.mjs'

const MODEL = 'bench-chat'

export const scenario = {
  name: 'chat-json',
  title: 'chat, JSON, 32 connections',
  unit: 'CPU µs/request',
  measurement: load,
  load: { connections: 32 },
  unitsPerAnswer: 1,
  costNanoDollars: CHAT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.5,
  goal: 1.3,
  request: () => chatRequest(MODEL),
  faultsOf: (answer, proxy) =>
    jsonFaults(answer, { proxy, model: MODEL, isWhole: (body) => body.choices[0].message.content.length > 400 }),
}
