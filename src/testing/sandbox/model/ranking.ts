import { asList, asNumber, asText, type Fields } from '../request-fields.ts'
import { countTokens } from './chat-turn.ts'

/** One document of an answer. */
export interface Ranked {
  readonly index: number
  readonly relevance_score: number
  readonly document?: { readonly text: string }
}

/** Returns the texts to rank, or `undefined` unless they are a list of non-empty strings. */
export function rankedTexts(documents: unknown): readonly string[] | undefined {
  const texts = asList(documents)
  return texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '')
    ? (texts as readonly string[])
    : undefined
}

/** Returns all texts of the request, for fault marks. */
export function rankingPromptText({ query, documents }: Fields): string {
  return [query, ...asList(documents)].map(asText).join('\n')
}

/**
 * Ranks the documents by the share of the query's words that they contain. Equal scores keep their order. Scores are from 0 to 1.
 * @param most Maximum number of results, or `undefined` for all.
 */
export function ranking(query: string, texts: readonly string[], most: unknown, showsDocuments: boolean): Ranked[] {
  const words = wordsOf(query)
  const scored = texts.map((text, index): Ranked => {
    const held = new Set(wordsOf(text))
    const share = words.filter((word) => held.has(word)).length / Math.max(1, words.length)
    const relevance_score = Math.round((0.01 + 0.98 * share) * 10_000) / 10_000
    return showsDocuments ? { index, relevance_score, document: { text } } : { index, relevance_score }
  })
  scored.sort((one, other) => other.relevance_score - one.relevance_score)
  return scored.slice(0, asNumber(most) ?? texts.length)
}

/** Returns the tokens that a vendor reads: the query once per document, and the documents. */
export function rankingTokens(query: string, texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countTokens([text]), countTokens([query]) * texts.length)
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/\p{L}+/gu) ?? []
}
