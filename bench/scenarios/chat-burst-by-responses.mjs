import { burstScenario, CHAT, RESPONSES, translated } from './stream-scenario.mjs'

/** At most twice what `responses-burst` costs. */
export const scenario = burstScenario(translated(CHAT, RESPONSES), {
  name: 'chat-burst-by-responses',
  title: 'chat on a model with Responses only, 208 events at once, 16 connections',
  model: 'bench-pro-burst',
  target: 2,
  goal: 1.5,
})
