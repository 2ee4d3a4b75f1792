import { createHash } from 'node:crypto'
import { serve as serveBare } from './bare.mjs'

export const name = 'bare-reading'
export const title = 'bare, reading both bodies'
export const isTranslating = false

/** Scenarios whose whole answers are parsed for their usage. */
export const scenarios = ['chat-json']

const HEADERS = [
  ['x-request-id', 'req_01a200f322a9808ad34a35357755c491'],
  ['x-signalbox-vendor', 'openai'],
  ['x-signalbox-cost', '0.000163000'],
  ['x-ratelimit-limit-requests', '1000000000'],
  ['x-ratelimit-remaining-requests', '999999999'],
  ['x-ratelimit-reset-requests', '1ms'],
  ['x-ratelimit-limit-tokens', '1000000000000'],
  ['x-ratelimit-remaining-tokens', '999999999999'],
  ['x-ratelimit-reset-tokens', '1ms'],
].flat()

/**
 * The floor plus the work that no gateway can avoid: the key is hashed, request and answer are parsed, and the headers that SDKs
 * read are sent. It checks nothing, limits nothing and counts no money.
 */
export async function serve(options) {
  return serveBare(options, {
    onRequest(headers, body) {
      createHash('sha256').update(headers.authorization).digest('hex')
      JSON.parse(body.toString())
    },
    onAnswer: (chunk) => void JSON.parse(chunk.toString()),
    headers: HEADERS,
  })
}
