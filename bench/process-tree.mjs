import { readdirSync, readFileSync } from 'node:fs'

/** Linux reports CPU time in ticks of `sysconf(_SC_CLK_TCK)` (man 5 proc), which is 100 a second wherever Node runs. */
const MICROSECONDS_PER_TICK = 10_000
const KIBIBYTE = 1_024

/** Whether the processes of a program can be read. */
export const canReadProcesses = process.platform === 'linux'

/**
 * Returns the usage of a process and all its descendants: CPU in microseconds, in steps of a tick, including ended children;
 * resident memory and the sum of each process's peak, in bytes. Pages that processes share are counted for each.
 */
export function processTreeUsage(rootId) {
  const usage = { cpuMicroseconds: 0, residentBytes: 0, peakBytes: 0 }
  const processes = readProcesses()
  for (const id of treeOf(processes, rootId)) {
    usage.cpuMicroseconds += processes.get(id).cpuTicks * MICROSECONDS_PER_TICK
    const { residentBytes, peakBytes } = parseStatus(readProcessFile(id, 'status') ?? '')
    usage.residentBytes += residentBytes
    usage.peakBytes += peakBytes
  }
  return usage
}

/**
 * Returns the CPU time of the main threads of a process and its descendants, in microseconds, in steps of a tick. The rest of
 * their CPU time is that of helper threads: garbage collector, compiler, file system and name look-ups.
 */
export function mainThreadsMicroseconds(rootId) {
  let ticks = 0
  for (const id of treeOf(readProcesses(), rootId)) {
    const stat = readProcessFile(id, `task/${id}/stat`)
    if (stat !== undefined) ticks += parseStat(stat).ownTicks
  }
  return ticks * MICROSECONDS_PER_TICK
}

/** Ids of a process and its descendants, itself first. Empty if it has ended. */
export function treeOf(processes, rootId) {
  if (!processes.has(rootId)) return []
  const ids = [rootId]
  for (const parentId of ids) {
    for (const [id, process] of processes) if (process.parentId === parentId) ids.push(id)
  }
  return ids
}

/**
 * Reads `/proc/<id>/stat`, or `/proc/<id>/task/<thread>/stat`, in which children are those of the whole process.
 * @returns `parentId`; `ownTicks` of CPU; `cpuTicks`, those of children that have ended included
 */
export function parseStat(text) {
  // The name of the program is in parentheses, and may contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15).map(Number)
  const ownTicks = user + system
  return { parentId: Number(fields[1]), ownTicks, cpuTicks: ownTicks + childrenUser + childrenSystem }
}

/** Reads the resident memory, and its peak, from `/proc/<id>/status`; 0 for a process that has ended. */
export function parseStatus(text) {
  const bytesOf = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * KIBIBYTE
  return { residentBytes: bytesOf('VmRSS'), peakBytes: bytesOf('VmHWM') }
}

/** Every process of the system. */
export function readProcesses() {
  const processes = new Map()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readProcessFile(name, 'stat') : undefined
    if (stat !== undefined) processes.set(Number(name), parseStat(stat))
  }
  return processes
}

/** Undefined for a process that has ended since it was listed. */
function readProcessFile(id, file) {
  try {
    return readFileSync(`/proc/${id}/${file}`, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  }
}
