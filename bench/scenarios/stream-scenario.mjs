import { chatStreamFaults, messagesStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { chatRequest, messagesRequest } from '../requests.mjs'
import { MESSAGES_EVENTS, STREAM_EVENTS } from '../vendor-answers.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

/** OpenAI's dialect on both sides. */
export const CHAT = {
  events: STREAM_EVENTS,
  request: (model) => chatRequest(model, { stream: true }),
  faultsOf: chatStreamFaults,
}

/** Anthropic's dialect on both sides: the gateway passes the events on, and replaces the model in the first. */
export const MESSAGES = { events: MESSAGES_EVENTS, request: messagesRequest, faultsOf: messagesStreamFaults }

/** All events at once, on few connections. */
export function burstScenario(dialect, description) {
  return streamScenario(dialect, { load: { connections: 16 }, ...description })
}

/** Many streams at a time, each at the pace of a vendor that writes. */
export function pacedScenario(dialect, description) {
  return streamScenario(dialect, {
    load: { connections: 200, answersPerConnection: 1, spreadMs: 20 },
    ...description,
  })
}

function streamScenario(dialect, { model, ...description }) {
  return cpuScenario({
    per: 'event',
    unitsPerAnswer: dialect.events,
    costNanoDollars: CHAT_COST,
    request: (proxy) => dialect.request(model, proxy),
    faultsOf: (answer, proxy) => dialect.faultsOf(answer, { proxy, model }),
    ...description,
  })
}
