import { burstScenario, CHAT, MESSAGES } from './stream-scenario.mjs'

/** The gateway turns Anthropic's events into chat chunks; the floor passes the same events as they are. */
const TRANSLATED = {
  events: CHAT.events,
  request: (model, proxy) => (proxy.isTranslating ? CHAT : MESSAGES).request(model),
  faultsOf: (answer, { proxy, model }) => (proxy.isTranslating ? CHAT : MESSAGES).faultsOf(answer, { proxy, model }),
}

export const scenario = burstScenario(TRANSLATED, {
  name: 'chat-burst-translated',
  title: 'the same, translated from Anthropic',
  model: 'bench-claude-burst',
  target: 3,
  goal: 2.8,
})
