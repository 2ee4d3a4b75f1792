import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { TRANSCRIPTION_FORMATS } from '../../src/catalog/model-facts.ts'
import { GEMINI_LISTENING_MODELS, GEMINI_TRANSCRIPTION } from '../../src/catalog/models/gemini-transcription.ts'
import { modelDefinition } from '../../src/catalog/parse-model-definitions.ts'
import { MAX_FILE_BYTES, transcriptType } from '../../src/endpoints/transcriptions/transcription-operation.ts'
import { transcriptionFormSchema } from '../../src/endpoints/transcriptions/transcription-request.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/transcriptions.md')

test('the page lists the models with their formats', () => {
  const rows = [...openai().models, ...dashscope().models, ...GEMINI_LISTENING_MODELS]
  const models = createCatalog(rows)
    .list()
    .filter(({ kinds }) => kinds.includes('transcription'))
  const [, ...table] = firstTable(section(page, 'Models'))

  expect(table.map((row) => row.map((cell) => cell.replaceAll('`', '')))).toEqual(
    models.map(({ id, vendor, transcription }) => [
      id,
      vendor,
      transcription?.formats.join(', '),
      transcription?.streams === true ? 'yes' : 'no',
    ]),
  )
})

test('the page lists the members of a row, the fields of the schema and the formats', () => {
  const names = (title: string): string[] =>
    firstTable(section(page, title))
      .slice(1)
      .map(([name = '']) => name.replaceAll('`', ''))

  expect(names('Fields')).toEqual(Object.keys(transcriptionFormSchema().shape))
  expect(names('Formats').sort()).toEqual([...TRANSCRIPTION_FORMATS].sort())
  for (const member of Object.keys(modelDefinition().shape.transcription.unwrap().shape))
    expect(section(page, 'Models')).toContain(`| \`${member}\` |`)
})

test('the page names the bounds and the types of the code', () => {
  const fields = section(page, 'Fields')

  expect(fields).toContain(`at most ${MAX_FILE_BYTES} bytes, at Gemini ${GEMINI_TRANSCRIPTION.maxFileBytes}`)
  expect(section(page, 'Models')).toContain(`${MAX_FILE_BYTES} by default`)
  for (const [format = '', answer = ''] of firstTable(section(page, 'Formats')).slice(1)) {
    const type = transcriptType(format.replaceAll('`', '') as 'json')
    if (type !== undefined) expect(answer).toContain(type.split(';')[0])
  }
})
