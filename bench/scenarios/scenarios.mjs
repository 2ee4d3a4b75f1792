import { scenario as chatBurst } from './chat-burst.mjs'
import { scenario as chatBurstByResponses } from './chat-burst-by-responses.mjs'
import { scenario as chatBurstTranslated } from './chat-burst-translated.mjs'
import { scenario as chatJson } from './chat-json.mjs'
import { scenario as chatPaced } from './chat-paced.mjs'
import { scenario as edits } from './edits.mjs'
import { scenario as editsMemory } from './edits-memory.mjs'
import { scenario as embeddings } from './embeddings.mjs'
import { scenario as firstByte } from './first-byte.mjs'
import { scenario as messagesBurst } from './messages-burst.mjs'
import { scenario as messagesPaced } from './messages-paced.mjs'
import { scenario as openStreams } from './open-streams.mjs'
import { scenario as responsesBurst } from './responses-burst.mjs'
import { scenario as responsesBurstTranslated } from './responses-burst-translated.mjs'
import { scenario as responsesJson } from './responses-json.mjs'
import { scenario as videoSubmit } from './video-submit.mjs'

/**
 * Scenarios, in the order of their measurement. `comparison` is the value that is compared with `target`, and with the stricter `goal`:
 * the `ratio` to the floor, the `difference` to it, or the `absolute` value.
 */
export const SCENARIOS = [
  chatJson,
  chatPaced,
  chatBurst,
  chatBurstTranslated,
  messagesPaced,
  messagesBurst,
  responsesJson,
  responsesBurst,
  responsesBurstTranslated,
  chatBurstByResponses,
  embeddings,
  edits,
  videoSubmit,
  firstByte,
  openStreams,
  editsMemory,
]
