import { chatExchange } from './chat-exchange.ts'
import { embeddingsExchange } from './embeddings-exchange.ts'
import type { MakeExchange } from './vendor-exchange.ts'

/** How each endpoint is carried out at a vendor, by endpoint id. */
export const EXCHANGES: ReadonlyMap<string, MakeExchange> = new Map<string, MakeExchange>([
  ['chat', chatExchange as MakeExchange],
  ['embeddings', embeddingsExchange as MakeExchange],
])
