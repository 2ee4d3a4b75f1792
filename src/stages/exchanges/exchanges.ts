import { chatExchange } from './chat-exchange.ts'
import { embeddingsExchange } from './embeddings-exchange.ts'
import { imageEditsExchange, imagesExchange } from './image-exchange.ts'
import { messagesExchange } from './messages-exchange.ts'
import { speechExchange } from './speech-exchange.ts'
import type { MakeExchange } from './vendor-exchange.ts'
import { videosExchange } from './videos-exchange.ts'

/** How each endpoint is carried out at a vendor, by endpoint id. */
export const EXCHANGES: ReadonlyMap<string, MakeExchange> = new Map<string, MakeExchange>([
  ['chat', chatExchange as MakeExchange],
  ['messages', messagesExchange as MakeExchange],
  ['embeddings', embeddingsExchange as MakeExchange],
  ['images', imagesExchange],
  ['image_edits', imageEditsExchange],
  ['videos', videosExchange as MakeExchange],
  ['speech', speechExchange as MakeExchange],
])
