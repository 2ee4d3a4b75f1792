import { PRICES } from './proxies/gateway.mjs'
import { CHAT_USAGE, EMBEDDINGS_USAGE } from './vendor-answers.mjs'

const perToken = (dollarsPerMillion) => BigInt(Math.round(Number(dollarsPerMillion) * 1_000))

/** Nano-dollars that one chat answer of the mock vendor costs. */
export const CHAT_COST =
  BigInt(CHAT_USAGE.input) * perToken(PRICES.input) + BigInt(CHAT_USAGE.output) * perToken(PRICES.output)

/** Nano-dollars that one embeddings answer costs. */
export const EMBEDDINGS_COST = BigInt(EMBEDDINGS_USAGE.input) * perToken(PRICES.input)
