import { scenario as chatBurst } from './chat-burst.mjs'
import { CHAT, pacedScenario } from './stream-scenario.mjs'

export const scenario = pacedScenario(CHAT, {
  name: 'chat-paced',
  title: 'chat, 200 streams, an event every 20 ms',
  model: 'bench-chat-paced',
  warmUp: chatBurst,
  target: 1.1,
})
