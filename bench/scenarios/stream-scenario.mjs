import { chatStreamFaults, messagesStreamFaults, responsesStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { chatRequest, messagesRequest, responsesRequest } from '../requests.mjs'
import { MESSAGES_EVENTS, RESPONSES_EVENTS, STREAM_EVENTS } from '../vendor-answers.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

/** OpenAI's dialect on both sides. */
export const CHAT = {
  events: STREAM_EVENTS,
  request: (model) => chatRequest(model, { stream: true }),
  faultsOf: chatStreamFaults,
}

/** Anthropic's dialect on both sides: the gateway passes the events on, and replaces the model in the first. */
export const MESSAGES = { events: MESSAGES_EVENTS, request: messagesRequest, faultsOf: messagesStreamFaults }

/** OpenAI's Responses on both sides: the gateway passes the events on, and replaces the model in the first and the last. */
export const RESPONSES = {
  events: RESPONSES_EVENTS,
  request: (model) => responsesRequest(model, { stream: true }),
  faultsOf: responsesStreamFaults,
}

/** The gateway turns the events of `vendor` into those of `caller`; the floor passes the same events as they are. */
export function translated(caller, vendor) {
  const side = (proxy) => (proxy.isTranslating ? caller : vendor)
  return {
    events: vendor.events,
    request: (model, proxy) => side(proxy).request(model),
    faultsOf: (answer, { proxy, model }) => side(proxy).faultsOf(answer, { proxy, model }),
  }
}

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
