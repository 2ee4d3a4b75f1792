import { asList, asObject } from '../model/loose-json.ts'

type Json = Readonly<Record<string, unknown>>

/** The content blocks of a message; text alone is one block. */
export function blocksOf(message: Json): Json[] {
  const { content } = message
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content).map(asObject)
}
