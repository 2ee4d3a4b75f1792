import { PRICES, VIDEO_SECOND_PRICE } from './proxies/gateway.mjs'
import { CHAT_USAGE, EDIT_USAGE, EMBEDDINGS_USAGE } from './vendor-answers.mjs'

const perToken = (dollarsPerMillion) => BigInt(Math.round(Number(dollarsPerMillion) * 1_000))

/** Nano-dollars that one chat answer of the mock vendor costs. */
export const CHAT_COST =
  BigInt(CHAT_USAGE.input) * perToken(PRICES.input) + BigInt(CHAT_USAGE.output) * perToken(PRICES.output)

/** Nano-dollars that one embeddings answer costs. */
export const EMBEDDINGS_COST = BigInt(EMBEDDINGS_USAGE.input) * perToken(PRICES.input)

/** Nano-dollars that one image edit costs; its output contains only images. */
export const EDIT_COST =
  BigInt(EDIT_USAGE.text) * perToken(PRICES.input) +
  BigInt(EDIT_USAGE.pictures) * perToken(PRICES.inputPicture) +
  BigInt(EDIT_USAGE.output) * perToken(PRICES.outputPicture)

/** Nano-dollars that are held for one video of `seconds`. */
export const videoHold = (seconds) => BigInt(seconds) * BigInt(Math.round(Number(VIDEO_SECOND_PRICE) * 1e9))
