import { jsonFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { responsesRequest } from '../requests.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

const MODEL = 'bench-chat'

/** At most 5 % more than `chat-json`. */
export const scenario = cpuScenario({
  name: 'responses-json',
  title: 'Responses, JSON, 32 connections',
  per: 'request',
  load: { connections: 32 },
  costNanoDollars: CHAT_COST,
  target: 1.5,
  goal: 1.3,
  request: () => responsesRequest(MODEL),
  faultsOf: (answer, proxy) =>
    jsonFaults(answer, { proxy, model: MODEL, isWhole: (body) => body.output[0].content[0].text.length > 400 }),
})
