import { jsonFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { chatRequest } from '../requests.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

const MODEL = 'bench-chat'

export const scenario = cpuScenario({
  name: 'chat-json',
  title: 'chat, JSON, 32 connections',
  per: 'request',
  load: { connections: 32 },
  costNanoDollars: CHAT_COST,
  target: 1.5,
  goal: 1.3,
  request: () => chatRequest(MODEL),
  faultsOf: (answer, proxy) =>
    jsonFaults(answer, { proxy, model: MODEL, isWhole: (body) => body.choices[0].message.content.length > 400 }),
})
