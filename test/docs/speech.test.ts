import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { DASHSCOPE_SPEECH_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import {
  MAX_INSTRUCTION_CHARACTERS,
  MAX_SPEECH_CHARACTERS,
  speechSchema,
} from '../../src/endpoints/speech/speech-request.ts'
import { MP3_KILOBITS } from '../../src/wire/audio/encoders.ts'
import { firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/speech.md')
const models = createCatalog(DASHSCOPE_SPEECH_MODELS).list()

test('the page lists the models with their formats and voices', () => {
  const [, ...rows] = firstTable(section(page, 'Models'))

  expect(rows.map((row) => row.map((cell) => cell.replaceAll('`', '')))).toEqual(
    models.map(({ id, speech }) => [
      id,
      speech?.formats.join(', '),
      speech?.takesInstructions === true ? 'yes' : 'no',
      speech?.voices.join(', '),
    ]),
  )
})

test('the page lists the fields of the schema, with the bounds of the code', () => {
  const [, ...rows] = firstTable(section(page, 'Fields'))
  const rules = new Map(rows.map(([field = '', rule = '']) => [field, rule]))

  expect([...rules.keys()]).toEqual(Object.keys(speechSchema().shape))
  expect(rules.get('input')).toContain(`1 to ${MAX_SPEECH_CHARACTERS} characters`)
  expect(rules.get('instructions')).toContain(`at most ${MAX_INSTRUCTION_CHARACTERS} characters`)
})

test('the page names the bit rate and the limit of the code', () => {
  const text = section(page, 'The audio').replaceAll('\n', ' ')

  expect(text).toContain(`at ${MP3_KILOBITS} kbit/s`)
  for (const { speech } of models) expect(text).toContain(`${speech?.maxCharacters} characters`)
})

test('the example that the page names is there', () => {
  expect(statSync(`${ROOT}/examples/speech.mjs`).isFile()).toBe(true)
  expect(readFileSync(`${ROOT}/examples/speech.mjs`, 'utf8')).toContain('/v1/audio/speech')
})
