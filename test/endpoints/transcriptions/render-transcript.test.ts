import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { renderTranscript } from '../../../src/endpoints/transcriptions/transcription-operation.ts'

function subtitles(text: string): string {
  const transcript = { text, segments: [{ start: 0, end: 1, text }], usage: undefined }
  const chunks = renderTranscript(transcript, { wanted: 'srt', asked: 'verbose_json' }, undefined)
  return Buffer.concat(chunks ?? []).toString()
}

test('the text of a cue has no empty lines and no arrow', () => {
  expect(subtitles(' one \r\n\r\n \t\n two --> three\n')).toBe(
    '1\n00:00:00,000 --> 00:00:01,000\none\ntwo -> three\n\n',
  )
})

test('a text of many blanks is written in a moment', () => {
  const text = `one${' '.repeat(150_000)}two`

  expect(subtitles(text)).toContain(`\n${text}\n`)
})
