import { expect, test } from 'vitest'
import { bucketNames, MAX_KEPT_NAMES } from '../../src/pipeline/bucket-names.ts'

test('the names of a key are made once', () => {
  expect(bucketNames('key_1')).toBe(bucketNames('key_1'))
  expect(bucketNames('key_1')).toEqual({
    requests: 'requests:key_1',
    tokens: 'tokens:key_1',
    concurrency: 'concurrency:key_1',
  })
})

test('names are kept for a bounded number of keys', () => {
  const first = bucketNames('key_first')
  for (let key = 0; key <= MAX_KEPT_NAMES; key++) bucketNames(`key_${key}`)

  expect(bucketNames('key_first')).not.toBe(first)
  expect(bucketNames('key_first')).toEqual(first)
})
