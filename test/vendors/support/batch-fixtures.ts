import { Buffer } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import type { NativeReport, NativeResult, WireAnswer } from '../../../src/vendors/vendor.ts'

/** A vendor's report on a batch, and the expected result of reading it. */
export interface ReportFixture {
  readonly name: string
  readonly answer: unknown
  readonly report: Partial<NativeReport>
}

/** Returns the golden files of a vendor's batches: `results.jsonl` with its expected reading, and answers with their reports. */
export function batchFixtures(directory: URL): {
  readonly reports: readonly ReportFixture[]
  readonly results: readonly (readonly [line: string, result: NativeResult])[]
} {
  const read = (file: string): string => readFileSync(new URL(file, directory), 'utf8')
  const lines = read('results.jsonl').split('\n').slice(0, -1)
  const expected = JSON.parse(read('results.expected.json')) as NativeResult[]
  return {
    reports: readdirSync(directory)
      .filter((file) => !file.startsWith('results.'))
      .map((file) => ({
        name: file.slice(0, -'.json'.length),
        ...(JSON.parse(read(file)) as Omit<ReportFixture, 'name'>),
      })),
    results: lines.map((line, index) => [line, expected[index]!]),
  }
}

/** Returns a 2xx answer with this JSON. */
export function answerWith(value: unknown): WireAnswer {
  return { status: 200, headers: {}, body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)) }
}
