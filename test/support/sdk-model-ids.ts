import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const PACKAGES = join(import.meta.dirname, '../../node_modules')

/**
 * Returns the string literals of a union type in a declaration file of an installed package, in their order. An upgrade of the package
 * changes them, so a test that compares them with the catalog fails until the catalog is refreshed.
 * @throws Error if the file declares no such union.
 */
export function literalsOf(declarationFile: string, typeName: string): readonly string[] {
  const text = readFileSync(join(PACKAGES, declarationFile), 'utf8')
  const [, union = ''] = new RegExp(`\\btype ${typeName} =([^;]+);`).exec(text) ?? []
  const literals = [...union.matchAll(/(['"])(.+?)\1/g)].map(([, , literal]) => literal!)
  if (literals.length === 0) throw new Error(`${declarationFile} declares no union ${typeName}`)
  return literals
}

const chat = literalsOf('openai/resources/shared.d.ts', 'ChatModel')
const responsesOnly = literalsOf('openai/resources/shared.d.ts', 'ResponsesModel')

/** Model ids in the types of the vendors' SDKs. */
export const SDK_MODELS = {
  openai: [...chat, ...responsesOnly],
  /** Models that OpenAI's SDK accepts for Responses and not for chat completions. */
  openaiResponsesOnly: responsesOnly,
  anthropic: literalsOf('@anthropic-ai/sdk/resources/messages/messages.d.ts', 'Model'),
  gemini: literalsOf('@google/genai/dist/genai.d.ts', 'Model_2'),
} as const
