import { burstScenario, CHAT } from './stream-scenario.mjs'

export const scenario = burstScenario(CHAT, {
  name: 'chat-burst',
  title: 'chat, 204 events at once, 16 connections',
  model: 'bench-chat-burst',
  target: 0.9,
})
