import { expect, test } from 'vitest'
import * as testing from '../../src/testing/index.ts'
import { readPage } from './support/markdown.ts'

test('the page names every export of signalbox/testing', () => {
  const names = Object.keys(testing)

  expect(names.length).toBeGreaterThan(4)
  expect(names.filter((name) => !readPage('docs/testing.md').text.includes(name))).toEqual([])
})
