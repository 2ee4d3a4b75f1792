import { burstScenario, RESPONSES } from './stream-scenario.mjs'

export const scenario = burstScenario(RESPONSES, {
  name: 'responses-burst',
  title: 'Responses, 208 events at once, 16 connections',
  model: 'bench-chat-burst',
  target: 1.2,
  goal: 1,
})
