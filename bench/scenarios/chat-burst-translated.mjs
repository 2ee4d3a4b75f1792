import { burstScenario, CHAT, MESSAGES, translated } from './stream-scenario.mjs'

export const scenario = burstScenario(
  { ...translated(CHAT, MESSAGES), events: CHAT.events },
  {
    name: 'chat-burst-translated',
    title: 'the same, translated from Anthropic',
    model: 'bench-claude-burst',
    target: 1.5,
  },
)
