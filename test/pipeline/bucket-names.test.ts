import { expect, test } from 'vitest'
import { bucketNames, MAX_KEPT_NAMES } from '../../src/pipeline/admission.ts'
import { bucketKey } from '../../src/stores/redis/redis-scripts.ts'

test('the names of a key are made once', () => {
  expect(bucketNames('acct_1', 'key', 'key_1')).toBe(bucketNames('acct_1', 'key', 'key_1'))
  expect(bucketNames('acct_1', 'key', 'key_1')).toEqual({
    requests: 'requests:acct_1/key:key_1',
    tokens: 'tokens:acct_1/key:key_1',
    concurrency: 'concurrency:acct_1/key:key_1',
  })
})

test('names are kept for a bounded number of keys', () => {
  const first = bucketNames('acct_1', 'key', 'key_first')
  for (let key = 0; key <= MAX_KEPT_NAMES; key++) bucketNames('acct_1', 'key', `key_${key}`)

  expect(bucketNames('acct_1', 'key', 'key_first')).not.toBe(first)
  expect(bucketNames('acct_1', 'key', 'key_first')).toEqual(first)
})

test('accounts, keys and users of the same name have names of their own', () => {
  const names = [
    bucketNames('a', 'account', 'a'),
    bucketNames('a', 'key', 'a'),
    bucketNames('a', 'user', 'a'),
    bucketNames('b', 'key', 'a'),
    bucketNames('a/key:b', 'key', 'c'),
    bucketNames('a', 'key', 'b/key:c'),
    bucketNames('a%2Fkey:b', 'key', 'c'),
  ].map(({ requests }) => requests)

  expect(new Set(names).size).toBe(names.length)
})

test('all names of an account are on one node of a cluster, so that one script takes from all of them', () => {
  const owners = [
    ['key', 'key_1'] as const,
    ['key', 'key_2'] as const,
    ['account', 'a/b}c'] as const,
    ['user', 'u'] as const,
  ]
  const tags = owners
    .flatMap(([owner, id]) => Object.values(bucketNames('a/b}c', owner, id)))
    .map((name: string) => /\{([^}]*)\}/.exec(bucketKey('signalbox:', name))?.[1])

  expect(new Set(tags)).toEqual(new Set(['a%2Fbc']))
})
