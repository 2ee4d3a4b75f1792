import { burstScenario, MESSAGES } from './stream-scenario.mjs'

export const scenario = burstScenario(MESSAGES, {
  name: 'messages-burst',
  title: 'Messages, 206 events at once, 16 connections',
  model: 'bench-claude-burst',
  target: 1.5,
  goal: 1.2,
})
