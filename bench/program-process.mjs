import { spawn } from 'node:child_process'
import net from 'node:net'
import { basename } from 'node:path'
import { pinned } from './child-process.mjs'
import { findProgram } from './find-program.mjs'
import { canReadProcesses, mainThreadsMicroseconds, processTreeUsage, readProcesses, treeOf } from './process-tree.mjs'

const LOOK_EVERY_MS = 50
const STOP_WITHIN_MS = 5_000
const KEPT_OUTPUT = 2_000

/** Running programs, and the function to call after each. */
const running = new Map()
// Other programs do not end with their parent.
process.on('exit', () => {
  if (running.size === 0) return
  const processes = readProcesses()
  for (const [{ pid }, onStop] of running) {
    for (const id of treeOf(processes, pid)) endNow(id)
    onStop?.()
  }
})

/**
 * Starts a server that is not part of this project. Resolves when it accepts connections.
 * @param {readonly string[]} command
 * @param {{
 *   core?: number, port: number, readyWithinMs?: number, environment?: NodeJS.ProcessEnv, user?: { uid: number, gid: number },
 *   stopSignal?: NodeJS.Signals, onStop?: () => void
 * }} options
 * @returns the same type as `lab.startProxy`; CPU and memory are those of all its processes
 * @throws Error with the end of what it wrote to its standard error
 */
export async function startProgram(command, options) {
  const { core, port, readyWithinMs = 30_000, environment, user, stopSignal = 'SIGTERM', onStop } = options
  const { program, arguments: rest } = pinned(command, core)
  const child = spawn(program, rest, { stdio: ['ignore', 'ignore', 'pipe'], env: environment, ...user })
  let output = ''
  child.stderr.on('data', (bytes) => {
    output = `${output}${bytes}`.slice(-KEPT_OUTPUT)
  })
  const ended = new Promise((resolve) => {
    child.once('error', resolve)
    child.once('exit', resolve)
  })
  running.set(child, onStop)
  const stop = async () => {
    await endTree(child, { ended, stopSignal })
    running.delete(child)
    onStop?.()
  }
  if (!(await accepts(port, { deadline: performance.now() + readyWithinMs, ended }))) {
    await stop()
    throw new Error(`${basename(command[0])} does not accept connections: ${output.trim()}`)
  }
  return {
    port,
    cpuMicroseconds: async () => processTreeUsage(child.pid).cpuMicroseconds,
    mainThreadMicroseconds: async () => mainThreadsMicroseconds(child.pid),
    memoryBytes: async () => {
      const { residentBytes, peakBytes } = processTreeUsage(child.pid)
      return { resident: residentBytes, peakResident: peakBytes, used: undefined }
    },
    account: async () => undefined,
    stop,
  }
}

/** Returns the reason why a program cannot be measured here, or undefined. `hint` says how to install it. */
export function reasonAgainst(program, hint) {
  if (!canReadProcesses) return 'not measured: the CPU time of its processes can be read on Linux only'
  return findProgram(program) === undefined ? `not measured: there is no \`${program}\` on PATH${hint}` : undefined
}

/** Finds an unused port. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject)
    server.listen({ port: 0, host: '127.0.0.1' }, () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Resolves to true when the port accepts connections, and to false after `deadline` or when the program has `ended`. */
export async function accepts(port, { deadline, ended = new Promise(() => {}) }) {
  let isOver = false
  ended.then(() => {
    isOver = true
  })
  while (!isOver && performance.now() < deadline) {
    if (await canConnect(port)) return true
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  return false
}

function canConnect(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' })
    const finish = (answer) => () => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', finish(true))
    socket.once('error', finish(false))
  })
}

/** Signals a program to end. It is killed if it takes too long, and its remaining children are killed in any case. */
async function endTree(child, { ended, stopSignal }) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ids = treeOf(readProcesses(), child.pid)
  child.kill(stopSignal)
  const timer = setTimeout(() => {
    for (const id of ids) endNow(id)
  }, STOP_WITHIN_MS)
  await ended
  clearTimeout(timer)
  for (const id of ids) endNow(id)
}

function endNow(id) {
  try {
    process.kill(id, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
