import { scenario as messagesBurst } from './messages-burst.mjs'
import { MESSAGES, pacedScenario } from './stream-scenario.mjs'

export const scenario = pacedScenario(MESSAGES, {
  name: 'messages-paced',
  title: 'Messages, 200 streams, an event every 20 ms',
  model: 'bench-claude-paced',
  warmUp: messagesBurst,
  target: 1.5,
  goal: 1.2,
})
