import { expect, test } from 'vitest'
import * as builders from '../../src/client/builders/index.ts'
import { retryDelayMs } from '../../src/client/connection.ts'
import * as entry from '../../src/client/index.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/client.md')

/** The names of all methods below an object: `videos.wait`. */
function methodsOf(value: object, prefix = ''): string[] {
  return Object.entries(value).flatMap(([name, member]) =>
    typeof member === 'function' ? [`${prefix}${name}`] : methodsOf(member as object, `${prefix}${name}.`),
  )
}

/** The first cells of a table, without the marks of code. */
function namesIn(heading: string): (string | undefined)[] {
  const [, ...rows] = firstTable(section(page, heading))
  return rows.map(([name]) => name?.replaceAll('`', ''))
}

test('the page lists the methods of the client', () => {
  const client = entry.createClient({ baseURL: 'http://127.0.0.1:8787/v1' })

  expect(namesIn('Methods')).toEqual(methodsOf(client))
})

test('the page lists the builders', () => {
  const names = Object.keys(builders).filter((name) => /^[a-z]/.test(name))

  expect([...namesIn('Builders')].sort()).toEqual(names.sort())
})

test('the page tells when and how long retries wait', () => {
  const text = section(page, 'Retries')
  const limited = (retryAfterSeconds?: number) => new entry.ClientError('rate_limited', { retryAfterSeconds })
  const delays = [0, 1, 2, 3, 4, 5, 6].map((attempt) => retryDelayMs(limited(), attempt) ?? 0)

  expect(text).toContain('above 60 seconds it throws immediately')
  expect([retryDelayMs(limited(60), 0), retryDelayMs(limited(61), 0)]).toEqual([60_000, undefined])
  expect(text).toContain('half a second')
  expect(delays[0]).toBeLessThanOrEqual(500)
  expect(delays[0]).toBeGreaterThanOrEqual(375)
  expect(text).toContain('up to 8 seconds')
  expect(Math.max(...delays)).toBeLessThanOrEqual(8_000)
  expect(retryDelayMs(new entry.ClientError('model_not_configured'), 0)).toBeUndefined()
})
