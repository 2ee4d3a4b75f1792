import { describe, expect, test } from 'vitest'
import { type ModelAbilities, modelAbilities } from '../../../src/vendors/gemini/model-abilities.ts'

type Flag = Exclude<keyof ModelAbilities, 'thinking'>

const FLAGS: readonly Flag[] = [
  'sampling',
  'penalties',
  'fetchesUrls',
  'systemInstruction',
  'checksSignatures',
  'jsonSchema',
]

describe('abilities by model id', () => {
  test.each<[id: string, flags: Flag[]]>([
    ['gemini-1.5-pro', ['sampling', 'penalties', 'systemInstruction']],
    ['gemini-2.0-flash', ['sampling', 'penalties', 'systemInstruction']],
    ['gemma-3-27b-it', ['sampling', 'penalties']],
    ['gemini-2.5-flash-lite', ['sampling', 'fetchesUrls', 'systemInstruction', 'jsonSchema']],
    ['gemini-2.5-pro', ['sampling', 'fetchesUrls', 'systemInstruction', 'jsonSchema']],
    ['gemini-3-flash-preview', ['sampling', 'fetchesUrls', 'systemInstruction', 'checksSignatures', 'jsonSchema']],
    ['gemini-3.5-flash', ['sampling', 'fetchesUrls', 'systemInstruction', 'checksSignatures', 'jsonSchema']],
    ['gemini-3.6-flash', ['fetchesUrls', 'systemInstruction', 'checksSignatures', 'jsonSchema']],
    ['gemini-3.10-pro', ['fetchesUrls', 'systemInstruction', 'checksSignatures', 'jsonSchema']],
    ['gemini-flash-latest', ['fetchesUrls', 'systemInstruction', 'checksSignatures', 'jsonSchema']],
    ['unheard-of', ['fetchesUrls', 'systemInstruction', 'checksSignatures', 'jsonSchema']],
  ])('%s', (id, flags) => {
    const abilities = modelAbilities(id)

    expect(FLAGS.filter((flag) => abilities[flag])).toEqual(flags)
  })
})
