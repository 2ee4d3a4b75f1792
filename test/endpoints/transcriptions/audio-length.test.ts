import { expect, test } from 'vitest'
import { audioLength, longestReport } from '../../../src/endpoints/transcriptions/transcription-request.ts'

const MAX_FILE_BYTES = 25 * 1024 * 1024
const PER_MINUTE = 0.0045

test.each([
  ['wav', 4.5],
  ['flac', 7.3],
  ['mp4', 7.3],
  ['mp3', 7.3],
  ['mpeg', 7.3],
  ['ogg', 9.7],
  ['webm', 9.7],
] as const)('limits the largest %s without a length to %d hours', (format, hours) => {
  const seconds = audioLength({ file: { byteLength: MAX_FILE_BYTES }, audio: { format, seconds: undefined } })

  expect(seconds / 3600).toBeCloseTo(hours, 1)
  // Amount held for a call at a usual price.
  if (format === 'mp3') expect((seconds / 60) * PER_MINUTE).toBeCloseTo(1.97, 2)
})

test('a measured length stands', () => {
  expect(audioLength({ file: { byteLength: 1_000 }, audio: { format: 'mp3', seconds: 0.4 } })).toBe(0.4)
})

test.each([
  ['a minute, as vendors round up', 1_000, 0.4, 60],
  ['four times the measured length', 32_000, 100, 400],
  ['what the bytes can hold', 3_000_000, 100, 3_000],
])('a report is believed up to %s', (_name, byteLength, seconds, longest) => {
  expect(longestReport({ file: { byteLength }, audio: { format: 'mp3', seconds } })).toBe(longest)
})
