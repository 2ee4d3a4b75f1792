import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { canReadProcesses, parseStat, parseStatus, processTreeUsage, treeOf } from '../../bench/process-tree.mjs'

test('CPU time is read behind a program name that has spaces and parentheses', () => {
  const stat = '4711 (node (a) b) S 42 4711 4711 0 -1 4194304 900 80 0 0 150 50 7 3 20 0 11 0 12345 1 1 0'

  expect(parseStat(stat)).toEqual({ parentId: 42, cpuTicks: 210 })
})

test('memory of a process that has ended is none', () => {
  const status = 'Name:\tnode\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nThreads:\t11\n'

  expect(parseStatus(status)).toEqual({ residentBytes: 1_048_576, peakBytes: 2_097_152 })
  expect(parseStatus('')).toEqual({ residentBytes: 0, peakBytes: 0 })
})

test('a tree is a process and everything below it', () => {
  const parents = [
    [1, 0],
    [10, 1],
    [11, 10],
    [12, 11],
    [20, 1],
  ] as const
  const processes = new Map(parents.map(([id, parentId]) => [id, { parentId, cpuTicks: 0 }]))

  expect(treeOf(processes, 10)).toEqual([10, 11, 12])
  expect(treeOf(processes, 99)).toEqual([])
})

test.runIf(canReadProcesses)('the CPU time of a child that has ended stays in the tree', async () => {
  const burn = `const end = performance.now() + 80; while (performance.now() < end) {}`
  const parent = spawn(process.execPath, [
    '-e',
    `require('node:child_process').spawnSync(process.execPath, ['-e', ${JSON.stringify(burn)}]); console.log('done'); setInterval(() => {}, 1e6)`,
  ])
  try {
    await once(parent.stdout, 'data')
    const { cpuMicroseconds, residentBytes } = processTreeUsage(parent.pid)

    expect(cpuMicroseconds).toBeGreaterThanOrEqual(50_000)
    expect(residentBytes).toBeGreaterThan(1_000_000)
  } finally {
    parent.kill('SIGKILL')
  }
})
