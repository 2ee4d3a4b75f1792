import { burstScenario, MESSAGES, RESPONSES, translated } from './stream-scenario.mjs'

/** At most twice what `responses-burst` costs. */
export const scenario = burstScenario(translated(RESPONSES, MESSAGES), {
  name: 'responses-burst-translated',
  title: 'the same, translated from Anthropic',
  model: 'bench-claude-burst',
  target: 3,
  goal: 2,
})
