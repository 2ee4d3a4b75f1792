import { asText } from '../model/loose-json.ts'
import { unitVector, vectorToBase64 } from '../model/unit-vector.ts'
import { countTokens } from '../model/words.ts'

/** The texts of an `input` field; token ids count as the text of their numbers. Undefined when it is nothing of the kind. */
export function inputTexts(input: unknown): string[] | undefined {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input)) return undefined
  if (input.length > 0 && input.every((entry) => typeof entry === 'number')) return [input.join(' ')]
  if (input.every((entry) => typeof entry === 'string')) return input
  if (input.every((entry) => Array.isArray(entry))) return input.map((entry) => (entry as unknown[]).join(' '))
  return undefined
}

/** Everything that was sent to be embedded, for fault marks. */
export function inputPromptText(body: { readonly input?: unknown }): string {
  return (inputTexts(body.input) ?? []).map(asText).join('\n')
}

/** How the vectors of an answer look. */
export interface VectorFormat {
  readonly dimensions: number
  readonly nativeDimensions: number
  readonly base64: boolean
}

/** The `data` list of an answer. */
export function embeddingData(texts: readonly string[], format: VectorFormat): Record<string, unknown>[] {
  return texts.map((text, index) => {
    const vector = unitVector(text, format.dimensions, format.nativeDimensions)
    return { object: 'embedding', index, embedding: format.base64 ? vectorToBase64(vector) : vector }
  })
}

/** Tokens of all texts: each is counted on its own. */
export function embeddingTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countTokens([text]), 0)
}
