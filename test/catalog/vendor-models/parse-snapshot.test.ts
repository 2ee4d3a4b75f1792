import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { BUILT_IN_SNAPSHOT, parseSnapshot, Snapshot } from '../../../src/catalog/vendor-models/snapshot.ts'

const NOW = Date.UTC(2027, 0, 15)
const LINE = 'gpt-9|GPT-9|c|1000|100|t|t|f|20270101|1,2'
const of = (...lines: unknown[]): object => ({ date: '2027-01-10', models: { openai: lines } })

describe('a snapshot file', () => {
  test('is accepted if it is that of the package', () => {
    const file: unknown = JSON.parse(readFileSync('src/catalog/vendor-models/snapshot.json', 'utf8'))

    expect(parseSnapshot(file, NOW).date).toBe(BUILT_IN_SNAPSHOT.date)
  })

  test('keeps the built-in list of a vendor that it does not name', () => {
    const snapshot = new Snapshot(parseSnapshot(of(LINE), NOW))

    expect([...snapshot.of('openai').ids()]).toEqual(['gpt-9'])
    expect(snapshot.of('voyage').size).toBe(BUILT_IN_SNAPSHOT.of('voyage').size)
    expect(snapshot.of('nobody').size).toBe(0)
  })

  test.each([
    ['a list', [], 'the snapshot: must be an object'],
    ['no date', { models: {} }, 'date: must be a day'],
    ['a date without a day', { ...of(LINE), date: '2027-01' }, 'date: must be a day'],
    ['a day that does not exist', { ...of(LINE), date: '2026-02-31' }, 'date: must be a day'],
    ['a day after tomorrow', { ...of(LINE), date: '2027-01-17' }, 'date: 2027-01-17 is in the future'],
    ['no models', { date: '2027-01-10' }, 'models: must be an object'],
    ['no vendor', { date: '2027-01-10', models: {} }, 'models: must list at least one vendor'],
    ['a vendor without a list', { date: '2027-01-10', models: { openai: {} } }, 'models.openai: must be a list'],
    ['an object in place of a line', of(LINE, { id: 'gpt-9' }), 'models.openai[1]: is not a well-formed model line'],
    ['a line that was cut off', of('gpt-9|GPT-9'), 'models.openai[0]: is not a well-formed'],
    ['an id with a space', of(LINE.replace('gpt-9', 'gpt 9')), 'is not a well-formed'],
    ['an id that leads elsewhere in a path', of(LINE.replace('gpt-9', '../gpt-9')), 'is not a well-formed'],
    ['an unknown kind', of(LINE.replace('|c|', '|x|')), 'is not a well-formed'],
    ['a price that is no number', of(LINE.replace('1,2', '1,free')), 'is not a well-formed'],
    ['a negative price', of(LINE.replace('1,2', '1,-2')), 'is not a well-formed'],
    ['a bad price of a tier', of(`${LINE};200000:2,x`), 'is not a well-formed'],
    ['a tier above no number', of(`${LINE};NaN:2,3`), 'is not a well-formed'],
    ['a context of no number', of(LINE.replace('1000', 'NaN')), 'is not a well-formed'],
    ['a month that does not exist', of(LINE.replace('20270101', '20271399')), 'is not a well-formed'],
    ['an id twice', of(LINE, LINE), 'models.openai[1]: repeats an id: "gpt-9|GPT-9'],
  ])('is rejected with the name of the fault if it has %s', (_name, json, message) => {
    expect(() => parseSnapshot(json, NOW)).toThrow(TypeError)
    expect(() => parseSnapshot(json, NOW)).toThrow(message)
  })
})
