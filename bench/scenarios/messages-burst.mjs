import { messagesStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { messagesRequest } from '../requests.mjs'
import { MESSAGES_EVENTS } from '../vendor-answers.mjs'

const MODEL = 'bench-claude-burst'

/** Anthropic's dialect on both sides: the gateway passes the events on, and replaces the model in the first. */
export const scenario = {
  name: 'messages-burst',
  title: 'Messages, 206 events at once, 16 connections',
  unit: 'CPU µs/event',
  measurement: load,
  load: { connections: 16 },
  unitsPerAnswer: MESSAGES_EVENTS,
  costNanoDollars: CHAT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.5,
  goal: 1.2,
  request: () => messagesRequest(MODEL),
  faultsOf: (answer, proxy) => messagesStreamFaults(answer, { proxy, model: MODEL }),
}
