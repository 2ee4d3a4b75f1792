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
  target: 1.7,
  goal: 1.5,
  targets: {
    gateway: { 24: { target: 1.35, goal: 1.2 } },
    'gateway-sqlite': { 20: { target: 2 }, 22: { target: 2 }, 24: { target: 1.65 } },
  },
  request: () => chatRequest(MODEL),
  faultsOf: (answer, proxy) =>
    jsonFaults(answer, { proxy, model: MODEL, isWhole: (body) => body.choices[0].message.content.length > 400 }),
})
