import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { usedBetween } from '../../bench/measurements/load.mjs'
import { canReadProcesses, mainThreadsMicroseconds, parseStat, treeOf } from '../../bench/process-tree.mjs'

const STAT = '4711 (node (a) b) S 42 4711 4711 0 -1 4194304 9000 0 3 0 120 30 7 5 20 0 11 0 100 1000 200'

test('the stat of a process tells its parent, its own ticks, and those of children that have ended', () => {
  expect(parseStat(STAT)).toEqual({ parentId: 42, ownTicks: 150, cpuTicks: 162 })
})

test('the tree of a process has its children and theirs, itself first', () => {
  const processes = new Map(
    [
      [1, 0],
      [10, 1],
      [11, 10],
      [12, 11],
      [20, 1],
    ].map(([id, parentId]) => [id!, { parentId: parentId!, ownTicks: 0, cpuTicks: 0 }]),
  )

  expect(treeOf(processes, 10)).toEqual([10, 11, 12])
  expect(treeOf(processes, 99)).toEqual([])
})

test.runIf(canReadProcesses)('the main thread of a process is told from its helpers', async () => {
  const busyWorker = `
    const { Worker } = require('node:worker_threads')
    const code = "const end = Date.now() + 400; while (Date.now() < end);"
    new Worker(code, { eval: true }).on('exit', () => {
      process.send(process.cpuUsage())
    })
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['-e', busyWorker], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })

  const [{ user, system }] = await once(child, 'message')
  const main = mainThreadsMicroseconds(child.pid!)
  child.kill('SIGKILL')
  await once(child, 'exit')

  expect(main).toBeGreaterThan(0)
  // The worker's own turn is in the process and not in its main thread, though its thread has ended.
  expect(user + system - main).toBeGreaterThan(100_000)
})

test('helper threads have used what the main thread has not', () => {
  const used = usedBetween({ cpu: 1_000, main: 500 }, { cpu: 41_000, main: 30_500 })

  expect(used).toEqual({
    cpuMicroseconds: 40_000,
    mainThreadMicroseconds: 30_000,
    helperThreadsMicroseconds: 10_000,
  })
})

test('a tick too many of the main thread makes no helper work less than nothing', () => {
  expect(usedBetween({ cpu: 0, main: 0 }, { cpu: 9_000, main: 10_000 })).toMatchObject({
    mainThreadMicroseconds: 9_000,
    helperThreadsMicroseconds: 0,
  })
})

test('reports only the total if threads cannot be read, and distinguishes a database', () => {
  const used = usedBetween({ cpu: 1_000, server: 5_000 }, { cpu: 3_000, server: 9_000 })

  expect(used).toEqual({ cpuMicroseconds: 2_000, serverMicroseconds: 4_000 })
})
