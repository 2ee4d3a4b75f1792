import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Folder of servers on Debian, which is not on the path of every user. */
const SERVER_FOLDERS = ['/usr/sbin', '/usr/local/sbin']

/** Returns the path of an executable on PATH or among the system's servers, or undefined. */
export function findProgram(name) {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...SERVER_FOLDERS]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
