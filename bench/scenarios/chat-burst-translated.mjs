import { chatStreamFaults, messagesStreamFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { chatRequest, messagesRequest } from '../requests.mjs'
import { STREAM_EVENTS } from '../vendor-answers.mjs'

const MODEL = 'bench-claude-burst'

/** The gateway turns Anthropic's events into chat chunks; the floor passes the same events as they are. */
export const scenario = {
  name: 'chat-burst-translated',
  title: 'the same, translated from Anthropic',
  unit: 'CPU µs/event',
  measurement: load,
  load: { connections: 16 },
  unitsPerAnswer: STREAM_EVENTS,
  costNanoDollars: CHAT_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 3,
  goal: 2.8,
  request: (proxy) => (proxy.isTranslating ? chatRequest(MODEL, { stream: true }) : messagesRequest(MODEL)),
  faultsOf: (answer, proxy) =>
    proxy.isTranslating ? chatStreamFaults(answer, { proxy, model: MODEL }) : messagesStreamFaults(answer),
}
